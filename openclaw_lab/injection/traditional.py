"""Simplified characters and the traditional ones that stand for them, one for one.

A choice of common characters whose traditional form is the same in nearly every word; those with several (发, 后, 里,
干) are not here. Enough to know words by; no translation.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

_SIMPLIFIED = (
    "这个们来时说会对为过还现开关门问间闻东车马鸟鱼见视规觉觅观览页顺须顾顿预领题颜额风飞饭饮馆驾验骗"
    "语请读谁课调谈论证评识诉词译试话该详误诱说请谢让记许设访议讲计认订训讯诚诺谋谓谜谨谱"
    "钱铁银错键锁链销镜长张强归录总统绝给结经维网络约级纪纯纲纳纸线练组细终绍织绩续编缩缓缘"
    "输软转轮较辅辆辑边达迁运近远违连迟适选递逻遗邮邻师帅带帮币应庆库废异弃弹从众优伤伪传"
    "务动劳势励区医华单卖卫厂厅历压县参双变号员围国图圆场坏块坚坛处备够头夹夺奋奖妇孙学宁宝实审宪宽对导层届属岁"
    "当态怀怜恶悬惊惯愿戏战户执扩扫扬护报担择损换据掷敌数断无旧显暂术机权条构标栏树样档桥检楼欢欧"
    "毕毙气汇汉沟没泪泽洁浅测济浏浓涂润渐温湾湿满滤灭灯灵灾热爱犹独狮状猎环电画疗监盖盘码确础禁离种称稳穷窃竞笔签简"
    "类粮紧纠红绿罗罚职联肃胜脏脑脚节苏药获虑虽补装触誉贝负财责败货质购贯贵费贴资赋赏赔赖赢赵趋跃践车轨"
    "远阅阳阴阵阶际陆陈险随隐难雾静韩预项频颗飘饰驱骑鲜龙龟齐"
    "将尔义乐书买乱争亏产亲仅仓仪仿价优伟侧侦侠俭债倾储儿党兰兴养决况冻净减凤凭击刘则创删别剂剧劝办"
)
_FULL = (
    "這個們來時說會對為過還現開關門問間聞東車馬鳥魚見視規覺覓觀覽頁順須顧頓預領題顏額風飛飯飲館駕驗騙"
    "語請讀誰課調談論證評識訴詞譯試話該詳誤誘說請謝讓記許設訪議講計認訂訓訊誠諾謀謂謎謹譜"
    "錢鐵銀錯鍵鎖鏈銷鏡長張強歸錄總統絕給結經維網絡約級紀純綱納紙線練組細終紹織績續編縮緩緣"
    "輸軟轉輪較輔輛輯邊達遷運近遠違連遲適選遞邏遺郵鄰師帥帶幫幣應慶庫廢異棄彈從眾優傷偽傳"
    "務動勞勢勵區醫華單賣衛廠廳歷壓縣參雙變號員圍國圖圓場壞塊堅壇處備夠頭夾奪奮獎婦孫學寧寶實審憲寬對導層屆屬歲"
    "當態懷憐惡懸驚慣願戲戰戶執擴掃揚護報擔擇損換據擲敵數斷無舊顯暫術機權條構標欄樹樣檔橋檢樓歡歐"
    "畢斃氣匯漢溝沒淚澤潔淺測濟瀏濃塗潤漸溫灣濕滿濾滅燈靈災熱愛猶獨獅狀獵環電畫療監蓋盤碼確礎禁離種稱穩窮竊競筆簽簡"
    "類糧緊糾紅綠羅罰職聯肅勝髒腦腳節蘇藥獲慮雖補裝觸譽貝負財責敗貨質購貫貴費貼資賦賞賠賴贏趙趨躍踐車軌"
    "遠閱陽陰陣階際陸陳險隨隱難霧靜韓預項頻顆飄飾驅騎鮮龍龜齊"
    "將爾義樂書買亂爭虧產親僅倉儀仿價優偉側偵俠儉債傾儲兒黨蘭興養決況凍淨減鳳憑擊劉則創刪別劑劇勸辦"
)

TRADITIONAL: Mapping[int, str] = MappingProxyType(
    {ord(simple): full for simple, full in zip(_SIMPLIFIED, _FULL, strict=True) if simple != full}
)
SIMPLIFIED: Mapping[int, str] = MappingProxyType({ord(full): chr(code) for code, full in TRADITIONAL.items()})
